import * as http from 'node:http';
import * as https from 'node:https';
import { connect, type LookupFunction } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { probePattern, type KubeManifest, type ProbePattern } from '#libs/manifests/lean';
import { argvOf, RefusedError } from '../ports.js';
import { runCommand } from '../command.js';
import type { FileSystems } from '../backends/paths/file-systems.js';
import { partsOf } from '../backends/paths/rooted-path.js';
import { isInstead } from '../backends/paths/path-differences.js';
import { fileAt, type FileRead } from '../backends/paths/path-state.js';
import { withAddresses } from './host-addresses.js';
import type { ProbeNetworks } from './probe-networks.js';

/** Reads objects of the cluster for which this applier works. */
export interface KubeReader {
  /** Undefined if there is none. Throws if that is not known. */
  read(object: Pick<KubeManifest, 'apiVersion' | 'kind' | 'metadata'>, timeoutMs: number): Promise<object | undefined>;
}

/** Evaluates CEL expressions, where they can be stopped. */
export interface ExpressionRunner {
  /** Why the expression is not true for the object; undefined if it is. */
  problem(expression: string, object: object, timeoutMs: number): Promise<string | undefined>;
}

/** What a probe can use. */
export interface ProbeSurroundings {
  readonly root: string;
  readonly allowExec: boolean;
  readonly probeNetworks: ProbeNetworks;
  readonly fileSystems: FileSystems;
  /** Only if the node is a cluster. */
  readonly kube?: KubeReader;
  /** Only if the node is a cluster. */
  readonly expressions?: ExpressionRunner;
  readonly ending: AbortSignal;
  /** Why a module of a network function does not work; left out if this is an applier of something else. */
  readonly whyModuleFails?: (module: string, timeoutMs: number) => Promise<string | undefined>;
}

/** One way to check whether the node works. */
export interface ProbeType {
  /** The field of the probe's spec. */
  readonly field: string;
  /** Throws Refused if this node cannot run the probe, or must not. */
  check(spec: Readonly<Record<string, unknown>>, surroundings: ProbeSurroundings): void;
  /**
   * One try: why it failed, or undefined. It ends in time by itself. `leftMs` is the time that is left for all probes,
   * or Infinity. Throws CutShortError if it had to wait for other probes until then.
   */
  tryOnce(
    spec: Readonly<Record<string, unknown>>,
    surroundings: ProbeSurroundings,
    timeoutMs: number,
    leftMs: number,
  ): Promise<string | undefined>;
}

/** The time of all probes ended before the try did, so it says nothing about the node. */
export class CutShortError extends Error {}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):([0-9]{1,5})$/;

/** `tcp {address}`: a connection is accepted. A refused connection fails. */
export const tcpProbe: ProbeType = {
  field: 'tcp',
  check: (spec, { probeNetworks }) => refuseHost(addressOf(spec).host, probeNetworks),
  tryOnce: async (spec, { probeNetworks }, timeoutMs) => {
    const { host, port } = addressOf(spec);
    refuseHost(host, probeNetworks);
    return connected(
      { host, port },
      timeoutMs,
      `no connection to ${String(spec['address'])}`,
      ({ message }) => message,
      (address) => probeNetworks.refusal(address),
    );
  },
};

/**
 * Connects. Returns undefined if that succeeded, or why it did not. `why` can treat some errors as success. `refusal`
 * says why an address may not be used.
 */
export function connected(
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number,
  late: string,
  why: (error: NodeJS.ErrnoException) => string | undefined,
  refusal: (address: string) => string | undefined = () => undefined,
): Promise<string | undefined> {
  const attempt = (lookup: LookupFunction, leftMs: number): Promise<string | undefined> =>
    new Promise((resolve) => {
      const socket = connect({ host, port, lookup });
      const end = (reason: string | undefined): void => {
        clearTimeout(timer);
        socket.destroy();
        resolve(reason);
      };
      const timer = setTimeout(() => end(`${late} in ${Math.round(timeoutMs)} ms`), leftMs);
      socket.on('connect', () => end(undefined));
      socket.on('error', (error) => end(why(error)));
    });
  return withAddresses(host, timeoutMs, refusal, attempt);
}

function addressOf(spec: Readonly<Record<string, unknown>>): { readonly host: string; readonly port: number } {
  const match = ADDRESS.exec(String(spec['address']));
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535)
    throw new RefusedError('content', `tcp.address ${JSON.stringify(spec['address'])} is not host:port`);
  return { host: match[1] ?? match[2] ?? '', port };
}

/** `http {url, status}`: a GET returns one of these statuses. Redirects are not followed. */
export const httpProbe: ProbeType = {
  field: 'http',
  check: (spec, { probeNetworks }) => {
    refuseHost(hostOf(urlOf(spec)), probeNetworks);
    statusesOf(spec);
  },
  tryOnce: async (spec, { probeNetworks }, timeoutMs) => {
    const url = urlOf(spec);
    refuseHost(hostOf(url), probeNetworks);
    const statuses = statusesOf(spec);
    const attempt = (lookup: LookupFunction, leftMs: number): Promise<string | undefined> =>
      new Promise((resolve) => {
        const options = { agent: false, lookup };
        const request = (url.protocol === 'https:' ? https : http).get(url, options, (response) => {
          response.resume();
          const status = response.statusCode ?? 0;
          end(statuses.includes(status) ? undefined : `${shownUrl(url)} answered ${status}`);
        });
        const timer = setTimeout(() => end(`no answer from ${shownUrl(url)} in ${Math.round(timeoutMs)} ms`), leftMs);
        const end = (reason: string | undefined): void => {
          clearTimeout(timer);
          resolve(reason);
          request.destroy();
        };
        request.on('error', (error) => end(error.message));
      });
    return withAddresses(hostOf(url), timeoutMs, (address) => probeNetworks.refusal(address), attempt);
  },
};

/** Reasons are kept in the ledger, and everybody sees them: without the password. */
function shownUrl(url: URL): string {
  const shown = new URL(url);
  shown.username = shown.password = '';
  return shown.href;
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

function refuseHost(host: string, networks: ProbeNetworks): void {
  const refusal = networks.refusal(host);
  if (refusal !== undefined) throw new RefusedError('node', refusal);
}

function urlOf(spec: Readonly<Record<string, unknown>>): URL {
  const text = String(spec['url']);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new RefusedError('content', 'http.url is not an http or https URL');
  return url;
}

function statusesOf(spec: Readonly<Record<string, unknown>>): readonly number[] {
  const { status } = spec;
  if (status === undefined) return [200];
  if (!Array.isArray(status) || !status.every((code) => Number.isInteger(code)))
    throw new RefusedError('content', 'http.status must be a list of status codes');
  return status as readonly number[];
}

/** `exec {argv}`: a command exits with 0. It runs without a shell, and only if the node's settings allow commands. */
export const execProbe: ProbeType = {
  field: 'exec',
  check: (spec, { allowExec }) => {
    if (!allowExec)
      throw new RefusedError('node', 'this node does not allow commands (its applier runs without --allow-exec)');
    argvOf(spec, 'exec');
  },
  tryOnce: async (spec, { root, allowExec, ending }, timeoutMs) => {
    if (!allowExec) return 'this node does not allow commands (its applier runs without --allow-exec)';
    const { passed, reason } = await runCommand(argvOf(spec, 'exec'), { root, timeoutMs, ending });
    return passed ? undefined : reason;
  },
};

/** `function {module}`: a module of a network function says that it works. */
export const functionProbe: ProbeType = {
  field: 'function',
  check: ({ module }, { whyModuleFails }) => {
    if (whyModuleFails === undefined)
      throw new RefusedError('node', 'a function probe needs the applier of a network function');
    if (typeof module !== 'string') throw new RefusedError('content', 'function.module is missing');
  },
  tryOnce: async ({ module }, { whyModuleFails }, timeoutMs) => await whyModuleFails?.(String(module), timeoutMs),
};

/** No config is larger. */
const LONGEST = 1_048_576;
/**
 * How many bytes times instructions a match may take: some seconds on a busy machine. Nothing else can run while a
 * pattern is matched. If it took longer, the guard would take the applier for hung.
 */
const MAX_WORK = 32 * LONGEST;

/** `file {path, matches}` or `{path, absent: true}`, below the root. `^` and `$` match at lines, as in grep. */
export const fileProbe: ProbeType = {
  field: 'file',
  check: (spec) => {
    partsOf(spec['path']);
    if (spec['absent'] !== true) patternOf(spec);
  },
  tryOnce: (spec, surroundings, timeoutMs, leftMs) =>
    inTime(leftMs, `${String(spec['path'])} was not checked in time`, (isLate) =>
      checkFile(spec, surroundings, timeoutMs, isLate),
    ),
};

async function checkFile(
  spec: Readonly<Record<string, unknown>>,
  { root, fileSystems }: ProbeSurroundings,
  timeoutMs: number,
  isLate: () => boolean,
): Promise<string | undefined> {
  const path = String(spec['path']);
  const folder = dirname(path);
  if (fileSystems.mayHang && !(await Promise.race([fileSystems.answers(folder), pause(timeoutMs, false)])))
    return `${path} was not read: the file system at ${folder} does not answer`;
  if (spec['absent'] === true) return (await fileAt(root, path)).now.state === 'absent' ? undefined : `${path} exists`;
  const pattern = patternOf(spec);
  const longest = Math.min(LONGEST, Math.floor(MAX_WORK / pattern.programSize()));
  // The size of a file that the kernel generates says nothing, and some have no end.
  const start = (isOver: () => boolean): Promise<FileRead> =>
    fileAt(root, path, {
      wants: ({ size }) => size <= longest,
      reads: (file) => file.start(longest + 1, () => isOver() || isLate()),
    });
  const { now, content } = await unlessLate(start, timeoutMs, `${path} was not read in ${Math.round(timeoutMs)} ms`);
  if (now.state !== 'file') return `${path} ${now.state === 'absent' ? 'is missing' : isInstead(now)}`;
  if (content === undefined || content.length > longest)
    return longest === LONGEST
      ? `${path} is longer than ${LONGEST} bytes`
      : `${path} is longer than ${longest} bytes, too long for this pattern: use a shorter one, or smaller numbers in {}`;
  // Nobody waits for a late match, and others wait for their turn.
  const isMatch = await inTurn(() => !isLate() && pattern.test(content.toString('utf8')));
  return isMatch ? undefined : `${path} does not match ${String(spec['matches'])}`;
}

/** Throws with this message once the time is over. The work cannot be ended, but can ask whether it is over. */
async function unlessLate<T>(work: (isOver: () => boolean) => Promise<T>, timeoutMs: number, late: string): Promise<T> {
  let isOver = false;
  const ending = new AbortController();
  const limit = pause(timeoutMs, undefined, { signal: ending.signal }).then(() => {
    isOver = true;
    throw new Error(late);
  });
  try {
    return await Promise.race([work(() => isOver), limit]);
  } finally {
    ending.abort();
    limit.catch(() => undefined);
  }
}

/** Throws CutShortError with this message once the time is over. The work goes on, and can ask whether it is late. */
function inTime<T>(leftMs: number, late: string, work: (isLate: () => boolean) => Promise<T>): Promise<T> {
  if (leftMs === Infinity) return work(() => false);
  let isLate = false;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      isLate = true;
      reject(new CutShortError(late));
    }, leftMs);
    void work(() => isLate)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

let last: Promise<unknown> = Promise.resolve();

/** One match after another, with timers between them: several probes must not stop the applier either. */
function inTurn(match: () => boolean): Promise<boolean> {
  const matched = last.then(() => new Promise((resolve) => setTimeout(resolve))).then(match);
  last = matched.catch(() => undefined);
  return matched;
}

function patternOf(spec: Readonly<Record<string, unknown>>): ProbePattern {
  const { matches } = spec;
  if (typeof matches !== 'string') throw new RefusedError('content', 'file needs either matches or absent');
  const pattern = probePattern(matches);
  if (typeof pattern === 'string')
    throw new RefusedError(
      'content',
      `file.matches: ${JSON.stringify(matches)} cannot be used (RE2 syntax): ${pattern}`,
    );
  return pattern;
}
