import type { Part } from '../harness/part.js';
import { admission } from './admission.js';
import { bytes } from './bytes.js';
import { cli } from './cli.js';
import { clusters } from './clusters.js';
import { coldStart } from './cold-start.js';
import { drains } from './drains.js';
import { failover } from './failover.js';
import { growth } from './growth.js';
import { handoff } from './handoff.js';
import { idleCpu } from './idle-cpu.js';
import { kubeNodes } from './kube-nodes.js';
import { peer } from './peer.js';
import { planActionsPart } from './plan-actions.js';
import { render } from './render.js';
import { replicas } from './replicas.js';
import { rollout10k } from './rollout-10k.js';
import { rss } from './rss.js';
import { scale } from './scale.js';
import { smallChange } from './small-change.js';
import { targets } from './targets.js';

/** In the order in which they run: first those that need no server. */
export const PARTS: readonly Part[] = [
  render,
  planActionsPart,
  admission,
  smallChange,
  rollout10k,
  growth,
  handoff,
  failover,
  coldStart,
  rss,
  idleCpu,
  bytes,
  cli,
  drains,
  kubeNodes,
  targets,
  clusters,
  peer,
  scale,
  replicas,
];
