/** The state of the certificate with which the gateway answers the API server. */
export interface CertificateStatus {
  readonly is: 'good' | 'ending' | 'expired' | 'not-yet' | 'kept' | 'unusable';
  /** What is wrong, for people, and what to do about it; both empty if all is well. */
  readonly words: string;
  readonly todo: string;
}

/** How long before its expiry a person should renew it. */
export const ENDING_MS = 14 * 24 * 3_600_000;
const DAY_MS = 24 * 3_600_000;
const UNREVIEWED = 'objects are stored without review';
const REPLACE = 'replace it: the new one is used without a restart';

/** The state of a certificate at a time. `ends`, `begins`: as people write them. */
export function certificateStatusOf(
  certificate: { readonly beginsMs: number; readonly endsMs: number; readonly begins: string; readonly ends: string },
  nowMs: number,
): CertificateStatus {
  const { beginsMs, endsMs, begins, ends } = certificate;
  if (nowMs >= endsMs)
    return {
      is: 'expired',
      words: `the certificate of the webhook expired on ${ends}, and ${UNREVIEWED}`,
      todo: REPLACE,
    };
  if (nowMs < beginsMs)
    return {
      is: 'not-yet',
      words: `the certificate of the webhook is not valid before ${begins}; until then ${UNREVIEWED}`,
      todo: 'wait, or check the clocks',
    };
  if (endsMs - nowMs >= ENDING_MS) return { is: 'good', words: '', todo: '' };
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  const when = days === 0 ? 'within a day' : `in ${days} ${days === 1 ? 'day' : 'days'}`;
  return { is: 'ending', words: `the certificate of the webhook expires ${when}, on ${ends}`, todo: REPLACE };
}

/** The state of a good certificate whose replacement cannot be used, with the reason. */
export const keptCertificate = (files: readonly string[], ends: string, why: string): CertificateStatus => ({
  is: 'kept',
  words: `the webhook keeps its current certificate, which expires on ${ends}, because the new files cannot be used: ${why}`,
  todo: todoOf(files),
});

/** The state of a certificate that cannot be read or used, with the reason. */
export const noCertificate = (files: readonly string[], why: string): CertificateStatus => ({
  is: 'unusable',
  words: `the webhook has no certificate, and ${UNREVIEWED}: ${why}`,
  todo: todoOf(files),
});

const todoOf = (files: readonly string[]): string =>
  `make sure that ${files.join(' and ')} hold a certificate and its key`;

/** Everything in one line; empty if all is well. */
export const certificateLine = ({ words, todo }: CertificateStatus): string =>
  words === '' ? '' : `${words}: ${todo}`;
