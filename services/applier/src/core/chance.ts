/** Randomness as a value: the seed comes from outside, and each draw returns the next state (mulberry32). */
export type Chance = number;

export function draw(chance: Chance): { readonly value: number; readonly next: Chance } {
  const next = (chance + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(next ^ (next >>> 15), next | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return { value: ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296, next };
}

const FIRST_DISTANCE_MS = 1_000;
const LAST_DISTANCE_MS = 60_000;

/** The pause before the next try: doubles from 1 s to 60 s. Up to half of it is random. */
export function distance(tries: number, chance: Chance): { readonly ms: number; readonly next: Chance } {
  const full = Math.min(LAST_DISTANCE_MS, FIRST_DISTANCE_MS * 2 ** Math.min(tries, 10));
  const { value, next } = draw(chance);
  return { ms: Math.round(full * (0.5 + value / 2)), next };
}
