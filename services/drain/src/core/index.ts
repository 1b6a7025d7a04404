export { drainCore, type Input, type Request } from './drain.js';
export { STRATEGIES, type State, type Strategy } from './state.js';
