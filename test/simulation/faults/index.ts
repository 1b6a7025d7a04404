import type { Fault } from './fault.js';
import { badPost } from './bad-post.js';
import { killedNodes } from './killed-nodes.js';
import { killedServices } from './killed-services.js';
import { lostAnswers } from './lost-answers.js';
import { partitions } from './partitions.js';
import { slowSteps } from './slow-steps.js';
import { staleLeaders } from './stale-leaders.js';

/** The menu. A fault is one small file and one line here. */
export const FAULTS: readonly Fault[] = [killedServices, staleLeaders, killedNodes, badPost, lostAnswers, slowSteps, partitions];
