import { effectivePolicy, policyRows, type PolicyRow } from '#libs/actions';
import type { Fragment } from '#libs/contracts';
import { EXIT, UsageError, type ExitCode } from '../exit.js';
import { actionText } from '../plan-answer.js';
import { table } from '../screens/table.js';
import type { Session } from '../session.js';
import { nodeNameOf } from '../steering.js';

/** `sluice get disruption-policy NODE`: what each kind of change needs on that node, by which rule of which policy. */
export async function getDisruptionPolicy(session: Session, name: string | undefined): Promise<ExitCode> {
  if (name === undefined) throw new UsageError('which node? sluice get disruption-policy NODE');
  const node = nodeNameOf(name);
  const fleet = await session.fleet();
  const [view, fragments] = await Promise.all([fleet.get('nodes', node), fleet.list('fragments')]);
  if (view === undefined || view.state === 'gone')
    throw new Error(`there is no node ${node}: sluice get nodes lists them`);
  const committed = [...fragments.values()].flatMap(({ fragment, gone }) =>
    fragment === undefined || gone ? [] : [fragment as Fragment],
  );
  const rules = policyRows(effectivePolicy(committed, view.labels));
  if (session.flags.output === 'yaml') session.io.out((await import('yaml')).stringify({ node, rules }).trimEnd());
  else if (session.isJson) session.io.out(JSON.stringify({ node, rules }));
  else
    session.io.out(
      table(
        ['CHANGE OF', 'NEEDS', 'POLICY', 'BY RULE'],
        rules.map((row) => [subjectOf(row), actionText(row.actions), row.policies.join(', '), row.rule]),
      ),
    );
  return EXIT.done;
}

/** What a rule is for, in the words of the policy. */
function subjectOf({ target, match }: PolicyRow): string {
  switch (target) {
    case 'kind':
      return `any ${match}`;
    case 'default':
      return 'anything else';
    case 'sshKeys':
      return 'SSH keys';
    default:
      return `${target} ${match}`;
  }
}
