import { publishCommand } from '../people/deeds.js';
import type { Fault } from './fault.js';

/** Commands whose effects stay on machines, unless they are undone. */
export const commands: Fault = {
  name: 'commands',
  about: 'people publish commands, of which some fail, and some can be undone',
  countsEffects: true,
  arrange: (stage) => stage.nowAndThen(50_000, (chance) => publishCommand(stage.world, chance)),
};
