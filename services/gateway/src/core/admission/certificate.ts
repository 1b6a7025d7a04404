/** How the certificate stands with which the gateway answers the API server. */
export interface CertificateStanding {
  readonly is: 'good' | 'ending' | 'expired' | 'not-yet' | 'unusable';
  /** What a person should know; empty where all is well. */
  readonly words: string;
}

/** So long before its end somebody should see to it. */
export const ENDING_MS = 14 * 24 * 3_600_000;
const DAY_MS = 24 * 3_600_000;

/** Where a certificate stands at a time of day. `ends`, `begins`: as people write them. */
export function standingOf(certificate: { readonly beginsMs: number; readonly endsMs: number; readonly begins: string; readonly ends: string }, nowMs: number): CertificateStanding {
  const { beginsMs, endsMs, begins, ends } = certificate;
  if (nowMs >= endsMs) return { is: 'expired', words: `the certificate of the webhook ran out on ${ends}: no object is reviewed before it is stored; put another in its place, which is taken without a restart` };
  if (nowMs < beginsMs) return { is: 'not-yet', words: `the certificate of the webhook holds from ${begins} on: until then no object is reviewed before it is stored` };
  if (endsMs - nowMs >= ENDING_MS) return { is: 'good', words: '' };
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  return { is: 'ending', words: `the certificate of the webhook runs out ${days === 0 ? 'within a day' : `in ${days} ${days === 1 ? 'day' : 'days'}`}, on ${ends}: put another in its place, which is taken without a restart` };
}
