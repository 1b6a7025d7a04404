/** How the certificate stands with which the gateway answers the API server. */
export interface CertificateStanding {
  readonly is: 'good' | 'ending' | 'expired' | 'not-yet' | 'kept' | 'unusable';
  /** What is the matter, in words for people, and what to do about it; both empty where all is well. */
  readonly words: string;
  readonly todo: string;
}

/** So long before its end somebody should see to it. */
export const ENDING_MS = 14 * 24 * 3_600_000;
const DAY_MS = 24 * 3_600_000;
const UNREVIEWED = 'no object is reviewed before it is stored';
const TODO = 'put another in its place: it is taken without a restart';

/** Where a certificate stands at a time of day. `ends`, `begins`: as people write them. */
export function standingOf(
  certificate: { readonly beginsMs: number; readonly endsMs: number; readonly begins: string; readonly ends: string },
  nowMs: number,
): CertificateStanding {
  const { beginsMs, endsMs, begins, ends } = certificate;
  if (nowMs >= endsMs)
    return { is: 'expired', words: `the certificate of the webhook ran out on ${ends}, and ${UNREVIEWED}`, todo: TODO };
  if (nowMs < beginsMs)
    return {
      is: 'not-yet',
      words: `the certificate of the webhook holds from ${begins} on, and until then ${UNREVIEWED}`,
      todo: 'wait, or see whether the clocks are right',
    };
  if (endsMs - nowMs >= ENDING_MS) return { is: 'good', words: '', todo: '' };
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  const when = days === 0 ? 'within a day' : `in ${days} ${days === 1 ? 'day' : 'days'}`;
  return { is: 'ending', words: `the certificate of the webhook runs out ${when}, on ${ends}`, todo: TODO };
}

/** Of one that is good, while what was put in its place cannot be used, for that reason. */
export const keptFor = (files: readonly string[], ends: string, why: string): CertificateStanding => ({
  is: 'kept',
  words: `the webhook keeps its certificate, which ends on ${ends}, for what lies there now cannot be used: ${why}`,
  todo: todoOf(files),
});

/** Of one that cannot be read or used, for that reason. */
export const noCertificate = (files: readonly string[], why: string): CertificateStanding => ({
  is: 'unusable',
  words: `the webhook has no certificate, and ${UNREVIEWED}: ${why}`,
  todo: todoOf(files),
});

const todoOf = (files: readonly string[]): string => `see that ${files.join(' and ')} hold a certificate and its key`;

/** All of it in one line; empty where all is well. */
export const lineOfStanding = ({ words, todo }: CertificateStanding): string =>
  words === '' ? '' : `${words}: ${todo}`;
