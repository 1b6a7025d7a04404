import { API_GROUP } from '#libs/manifests';
import type { Answer } from './answer.js';

/** What is asked about by this uid. */
interface Asked {
  readonly uid: string;
  readonly kind?: string;
  readonly name?: string;
}

/** An answer as an AdmissionReview; undefined for one that cannot be given. */
export function reviewOf({ uid, kind = '', name = '' }: Asked, answer: Answer): object | undefined {
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
