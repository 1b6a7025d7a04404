export { hear, inventoryCore, type Input, type Request, type Settings } from './inventory.js';
export type { State } from './state.js';
