import type { Answer } from '#libs/kernel';
import { BadRequestError, HaltedError, UnavailableError } from '../errors.js';
import { isConnectionTrouble } from '../ledger.js';

/** A refusal as it travels: the status for tools that know HTTP, the code for programs, the message for people. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

const STATUSES: Readonly<Record<string, number>> = {
  'bad-request': 400,
  'not-found': 404,
  unavailable: 503,
  halted: 503,
  internal: 500,
};
/** What is refused for any other reason is refused because of the state things are in. */
const CONFLICT = 409;

const refusal = (code: string, message: string): Refusal => ({ status: STATUSES[code] ?? CONFLICT, code, message });

/** What a handler returned: the core's answer, or any other value as the body. */
export function outcomeOf(result: unknown): { readonly body: unknown } | Refusal {
  if (!isAnswer(result)) return { body: result ?? {} };
  return result.ok ? { body: result.body ?? {} } : refusal(result.code, result.message);
}

/** What a handler threw. What is nobody's fault but ours tells no details. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof BadRequestError) return refusal('bad-request', error.message);
  if (error instanceof HaltedError) return refusal('halted', error.message);
  if (error instanceof UnavailableError || isConnectionTrouble(error))
    return refusal('unavailable', (error as Error).message);
  return refusal('internal', 'the service failed; its log says why');
}

function isAnswer(result: unknown): result is Answer {
  return typeof result === 'object' && result !== null && typeof (result as { readonly ok?: unknown }).ok === 'boolean';
}
