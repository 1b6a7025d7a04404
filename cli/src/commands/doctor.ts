import type { ViewBucket, ViewValues } from '#libs/contracts';
import { checkUp, overQuotaOn, type Check } from './checkup.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import type { Colours } from '../output/io.js';
import { mark } from '../output/marks.js';
import { count, pad, width } from '../output/table.js';
import type { Session } from '../connection/session.js';

/** `sluice doctor`: what is wrong with this installation, and how to fix it. */
export async function doctor(session: Session): Promise<ExitCode> {
  const fleet = await session.fleet();
  const facts = await fleet.inspect();
  // The inspection already names missing buckets.
  const valuesOf = async <B extends ViewBucket>(bucket: B): Promise<ViewValues[B][]> => [
    ...(await fleet.list(bucket).catch(() => new Map<string, ViewValues[B]>())).values(),
  ];
  const [nodes, rollouts, statuses, fragments, changes, pools] = await Promise.all([
    valuesOf('nodes'),
    valuesOf('rollouts'),
    valuesOf('status'),
    valuesOf('fragments'),
    valuesOf('changes'),
    valuesOf('pools'),
  ]);
  const checks = checkUp(facts, nodes, rollouts, statuses, fragments, {
    overQuota: overQuotaOn(session.io.now(), changes),
    pools,
  });
  const isHealthy = checks.every(({ state }) => state !== 'bad');
  session.io.out(
    session.isJson ? JSON.stringify({ ok: isHealthy, checks }) : checkupScreen(checks, session.io.colours),
  );
  return isHealthy ? EXIT.done : EXIT.unexpected;
}

/** What was checked, what is wrong, and how to fix it. */
export function checkupScreen(checks: readonly Check[], colours: Colours): string {
  const column = Math.max(...checks.map(({ what }) => width(what)));
  const tones = { good: 'good', bad: 'bad', note: 'calm' } as const;
  const lines = checks.flatMap(({ what, state, detail, todo }) => [
    `${mark(tones[state], colours)} ${pad(what, column)}  ${detail}`,
    ...(todo === '' ? [] : [`  ${' '.repeat(column)}  → ${todo}`]),
  ]);
  return [...lines, '', closing(checks, colours)].join('\n');
}

function closing(checks: readonly Check[], colours: Colours): string {
  const counted = (state: Check['state'], word: string): string => {
    const found = checks.filter((check) => check.state === state).length;
    return found === 0 ? '' : count(found, word);
  };
  const [problems, notes] = [counted('bad', 'problem'), counted('note', 'note')];
  if (problems !== '') return colours.red(`${problems} found${notes === '' ? '' : `, and ${notes}`}.`);
  return notes === ''
    ? colours.green('No problems found.')
    : colours.yellow(`No problems found, but ${notes}: see above.`);
}
