import { ACTION_KINDS, type Action } from '#libs/contracts';
import type { Refusal } from '../../core/index.js';
import { refusalOf, RefusedError } from '../ports.js';
import { SERVICES, type FunctionClient } from './function-client.js';

/** How long to wait before a service is told again. */
const AGAIN_MS = 500;
/** Actions that need nothing from the replica. */
const FREE: readonly string[] = ['none', 'drain'];
/** The capabilities that a node needs for the actions of a replica. */
export const SERVICE_CAPABILITIES = ['action:reload', 'action:restart'] as const;

/** Takes the actions of a change on one replica of a network function: restarts and reloads its services. */
export class FunctionServices {
  /** `ending`: nothing is tried again after this. */
  constructor(
    private readonly client: FunctionClient,
    private readonly ending?: AbortSignal,
  ) {}

  /** Why an action cannot be taken here. Changes nothing. An unknown action of another version passes, and fails. */
  async refusals(actions: readonly Action[]): Promise<readonly Refusal[]> {
    const refusals: Refusal[] = [];
    let known: readonly string[] | undefined;
    for (const { kind, unit = '' } of actions) {
      if (FREE.includes(kind) || !ACTION_KINDS.includes(kind)) continue;
      try {
        if (!isServiceAction(kind)) throw new RefusedError('node', 'a network function cannot do this');
        known ??= await this.services();
        if (!known.includes(unit)) throw new RefusedError('node', `it has only the services ${known.join(', ')}`);
      } catch (error) {
        refusals.push(refusalOf(error, `action ${kind}${unit === '' ? '' : ` of ${unit}`}`));
      }
    }
    return refusals;
  }

  /** Takes one action. It tries again until that succeeds; throws if the time is over, or the replica refuses. */
  async act({ kind, unit = '' }: Action, timeoutMs: number): Promise<void> {
    if (FREE.includes(kind)) return;
    if (!isServiceAction(kind)) throw new Error(`a network function does not support action ${kind}`);
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const failure = await this.tell(kind, unit, untilMs - performance.now());
      if (failure === undefined) return;
      if (this.ending?.aborted === true || untilMs - performance.now() <= AGAIN_MS) throw failure;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Why it failed, if another try may succeed. Throws if not. */
  private async tell(action: string, service: string, leftMs: number): Promise<Error | undefined> {
    // A replica answers once the service has restarted, which takes longer than other calls.
    const timeoutMs = Math.min(leftMs, Math.max(this.client.callTimeoutMs, leftMs / 2));
    const answer = await this.client
      .call('PUT', `sdewan/v1/service/${service}`, { action }, timeoutMs)
      .catch((error: Error) => error);
    if (answer instanceof Error) return answer;
    if (answer.status === 200) return undefined;
    throw new RefusedError(
      'node',
      `the network function refuses to ${action} ${service}: ${answer.status} ${answer.message}`,
    );
  }

  /** Throws if the replica has no such service. */
  async readUnit(unit: string): Promise<void> {
    if (!(await this.services()).includes(unit)) throw new Error(`the network function has no service ${unit}`);
  }

  private async services(): Promise<readonly string[]> {
    const { body } = await this.client.call('GET', SERVICES);
    return (body as { readonly services: readonly unknown[] }).services.map(String);
  }
}

const isServiceAction = (kind: string): boolean => kind === 'restart' || kind === 'reload';
