import { setFlagsFromString } from 'node:v8';

/**
 * Import this before everything else. While a service loads its code, V8 would grow the heap for short-lived garbage
 * and keep that memory, about a tenth of what an idle service uses. `letMemoryGrow` removes the limit for the work.
 */
setFlagsFromString('--semi-space-growth-factor=1');
