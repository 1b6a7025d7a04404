import type { FleetEvent } from '#libs/client';
import type { Action, FailingProbe } from '#libs/contracts';
import { parseSince } from '../input/times.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import type { Colours } from '../output/io.js';
import { failingText } from '../output/marks.js';
import { actionText } from '../output/plan.js';
import type { Session } from '../connection/session.js';

export interface EventFlags {
  readonly since?: string;
  readonly subject?: string;
  /** False: end at the message that is the last one now. */
  readonly follow: boolean;
}

/** `sluice events`: the messages of all three streams as they arrive, or from a given time on. */
export async function events(session: Session, flags: EventFlags): Promise<ExitCode> {
  const { io } = session;
  const since = flags.since === undefined ? undefined : parseSince(flags.since, io.now());
  if (flags.subject !== undefined && !/^[^\s.]+(\.[^\s.]+)*$/.test(flags.subject))
    throw new UsageError(
      `--subject: ${JSON.stringify(flags.subject)} is not a NATS subject; use one like node.lease.>`,
    );
  const fleet = await session.fleet();
  const messages = fleet.events({
    follow: flags.follow,
    signal: io.interrupted,
    ...(since === undefined ? {} : { since }),
    ...(flags.subject === undefined ? {} : { subject: flags.subject }),
  });
  for await (const event of messages) io.out(session.isJson ? JSON.stringify(event) : eventLine(event, io.colours));
  return EXIT.done;
}

/** Fields that the subject contains, or that are useless in a line. */
const SILENT = new Set([
  'v',
  'at',
  'change',
  'node',
  'pool',
  'recipe',
  'nonce',
  'seq',
  'incarnation',
  'bootId',
  'attempt',
  'targets',
]);
const LONGEST = 40;

/** One message as one line: time, subject, content. */
export function eventLine(event: FleetEvent, colours: Colours): string {
  const tone = /\.(rejected|invalid|failed|unknown|reverting|stalled|silent|unhealthy|blocked)\./.test(
    `${event.subject}.`,
  )
    ? colours.red
    : /\.(committed|succeeded|complete|applied|validated)\./.test(`${event.subject}.`)
      ? colours.green
      : colours.cyan;
  return `${colours.dim(event.time.slice(11, 23))} ${tone(event.subject)}  ${oneLine(summary(event.body))}`.trimEnd();
}

/** A publisher chooses texts and keys of a body, and must not forge further events with them. */
const oneLine = (shown: string): string => shown.replaceAll('\n', '\\n');

function summary(body: unknown): string {
  if (typeof body !== 'object' || body === null) return String(body).slice(0, 200);
  return Object.entries(body)
    .filter(([key, value]) => !SILENT.has(key) && !isEmpty(value))
    .map(([key, value]) => `${key}=${text(key, value)}`)
    .join(' ');
}

function text(key: string, value: unknown): string {
  if (key === 'actions') return JSON.stringify(actionText(value as Action[]));
  if (key === 'reasons' || key === 'warnings')
    return JSON.stringify((value as { message: string }[]).map(({ message }) => message).join('; '));
  if (key === 'failingProbes') return JSON.stringify(failingText(value as FailingProbe[]));
  if (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)) return value.slice(0, 12);
  if (Array.isArray(value) && value.some((item) => typeof item === 'object')) return `[${value.length}]`;
  if (Array.isArray(value)) return value.slice(0, 8).join(',');
  const text = typeof value === 'string' && !/[\s"]/.test(value) ? value : JSON.stringify(value);
  return text.length > LONGEST * 4 ? `${text.slice(0, LONGEST * 4)}…` : text;
}

const isEmpty = (value: unknown): boolean =>
  value === '' ||
  value === undefined ||
  value === null ||
  value === 0 ||
  value === false ||
  (typeof value === 'object' && Object.keys(value as object).length === 0);
