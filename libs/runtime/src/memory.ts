import { setFlagsFromString } from 'node:v8';

/** Ends what `lean-start` began: from here on V8 takes the room that the work needs. */
export const letMemoryGrow = (): void => setFlagsFromString('--semi-space-growth-factor=2');
