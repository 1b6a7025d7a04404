import type { Reason } from '#libs/contracts';
import { API_GROUP } from '#libs/manifests';

/** What to tell the API server. */
export type AdmissionAnswer =
  | { readonly is: 'allowed'; readonly warnings: readonly string[] }
  /** The object itself is wrong, or what may not be changed was. */
  | { readonly is: 'invalid'; readonly message: string; readonly reasons: readonly Reason[] }
  | { readonly is: 'forbidden'; readonly message: string }
  /** Too little is known yet to say who may do what. */
  | { readonly is: 'unready' };

export const ALLOWED: AdmissionAnswer = { is: 'allowed', warnings: [] };
/** What is asked about by this uid. */
interface RequestIdentity {
  readonly uid: string;
  readonly kind?: string;
  readonly name?: string;
}

/** An answer as an AdmissionReview; undefined for one that cannot be given. */
export function reviewOf({ uid, kind = '', name = '' }: RequestIdentity, answer: AdmissionAnswer): object | undefined {
  switch (answer.is) {
    case 'unready':
      return undefined;
    case 'allowed':
      return review({ uid, allowed: true, ...(answer.warnings.length === 0 ? {} : { warnings: answer.warnings }) });
    case 'forbidden':
      return review({
        uid,
        allowed: false,
        status: { status: 'Failure', code: 403, reason: 'Forbidden', message: answer.message },
      });
    case 'invalid': {
      // kubectl shows these, one a line; the message is for those that show no more.
      const causes = answer.reasons.map(({ fragment, field, code, message }) => ({
        reason: code,
        field: fragment === `${kind}/${name}` || fragment === '' ? field : `${fragment} ${field}`,
        message,
      }));
      return review({
        uid,
        allowed: false,
        status: {
          status: 'Failure',
          code: 422,
          reason: 'Invalid',
          message: answer.message,
          details: { group: API_GROUP, kind, name, causes },
        },
      });
    }
  }
}

const review = (response: object): object => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response });
