import type { Evidence } from '../evidence.js';
import { budget } from './budget.js';
import { drains } from './drains.js';
import { ended } from './ended.js';
import { files } from './files.js';
import { leases } from './leases.js';
import { memory } from './memory.js';
import { running } from './running.js';

const ORACLES = [files, running, budget, leases, drains, ended, memory] as const;

/** The violations, each with the name of its oracle. Only the first few of each oracle. */
export const judge = (evidence: Evidence): readonly string[] =>
  ORACLES.flatMap(({ name, judge: ask }) =>
    ask(evidence)
      .slice(0, 10)
      .map((text) => `${name}: ${text}`),
  );
