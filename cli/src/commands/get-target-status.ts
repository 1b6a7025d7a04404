import type { TargetStatus } from '#libs/nats/lean';
import type { Session } from '../connection/session.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { age, table } from '../output/table.js';

/** `sluice get target-status [NODE]`: what targets elsewhere say about themselves. */
export async function getTargetStatus(session: Session, name: string | undefined): Promise<ExitCode> {
  const { fleet, io, isJson, flags } = session;
  const all = [...(await (await fleet()).targetStatuses()).values()];
  const shown = all
    .filter(({ node }) => name === undefined || node === name)
    .toSorted((a, b) => a.node.localeCompare(b.node, 'en', { numeric: true }));
  if (name !== undefined && shown.length === 0)
    throw new Error(`${JSON.stringify(name)} not found in target-status: list them with sluice get target-status`);
  const data = name === undefined ? shown : shown[0];
  if (flags.output === 'yaml') io.out((await import('yaml')).stringify(data).trimEnd());
  else if (isJson) io.out(JSON.stringify(data));
  else if (shown.length === 0) io.say('no target-status found');
  else
    io.out(
      table(
        ['NODE', 'IPSEC', 'MODULES', 'AGE'],
        shown.map((status) => [
          status.node,
          connectionOf(status, io.colours.red),
          status.failure === '' ? status.modules.map((one) => one.name).join(', ') : io.colours.yellow(status.failure),
          age(status.at, io.now()),
        ]),
      ),
    );
  return EXIT.done;
}

/** Whether the encrypted connections are up, as the target says. */
function connectionOf({ modules }: TargetStatus, mark: (text: string) => string): string {
  const { status } = modules.find(({ name }) => name === 'ipsec') ?? {};
  const { InitConnection: found } = (status ?? {}) as { readonly InitConnection?: unknown };
  if (typeof found !== 'string') return '';
  return found === 'fail' ? mark(found) : found;
}
