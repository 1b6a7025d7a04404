import * as http from 'node:http';
import * as https from 'node:https';
import { connect } from 'node:net';
import { probePattern, type ProbePattern } from '#libs/manifests/lean';
import { argvOf, RefusedError } from '../ports.js';
import { runCommand } from '../command.js';
import { partsOf } from '../backends/paths/rooted-path.js';
import { fileAt } from '../backends/paths/path-state.js';

/** What a probe can use. */
export interface ProbeSurroundings {
  readonly root: string;
  readonly allowExec: boolean;
  readonly ending: AbortSignal;
}

/** One way to find out whether the node does well. */
export interface ProbeType {
  /** Of the probe's spec. */
  readonly field: string;
  /** Throws Refused when this node can or may not try it. */
  check(spec: Readonly<Record<string, unknown>>, surroundings: ProbeSurroundings): void;
  /** One try: why it failed, or undefined. Ends by itself in time. */
  tryOnce(
    spec: Readonly<Record<string, unknown>>,
    surroundings: ProbeSurroundings,
    timeoutMs: number,
  ): Promise<string | undefined>;
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):([0-9]{1,5})$/;

/** `tcp {address}`: a connection is accepted. Refused is not. */
export const tcpProbe: ProbeType = {
  field: 'tcp',
  check: (spec) => void addressOf(spec),
  tryOnce: (spec, _surroundings, timeoutMs) => {
    const { host, port } = addressOf(spec);
    return connected(host, port, timeoutMs, `no connection to ${String(spec['address'])}`, ({ message }) => message);
  },
};

/** Connects: undefined once that succeeded, or why it did not. `why` may take a failure for an answer. */
export function connected(
  host: string,
  port: number,
  timeoutMs: number,
  late: string,
  why: (error: NodeJS.ErrnoException) => string | undefined,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (reason: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(reason);
    };
    const timer = setTimeout(() => end(`${late} in ${Math.round(timeoutMs)} ms`), timeoutMs);
    socket.on('connect', () => end(undefined));
    socket.on('error', (error) => end(why(error)));
  });
}

function addressOf(spec: Readonly<Record<string, unknown>>): { readonly host: string; readonly port: number } {
  const match = ADDRESS.exec(String(spec['address']));
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535)
    throw new RefusedError('content', `tcp.address ${JSON.stringify(spec['address'])} is not host:port`);
  return { host: match[1] ?? match[2] ?? '', port };
}

/** `http {url, status}`: a GET is answered by one of these statuses; redirects are not followed. */
export const httpProbe: ProbeType = {
  field: 'http',
  check: (spec) => {
    urlOf(spec);
    statusesOf(spec);
  },
  tryOnce: (spec, _surroundings, timeoutMs) =>
    new Promise((resolve) => {
      const url = urlOf(spec);
      const wanted = statusesOf(spec);
      const request = (url.protocol === 'https:' ? https : http).get(url, { agent: false }, (response) => {
        response.resume();
        const status = response.statusCode ?? 0;
        end(wanted.includes(status) ? undefined : `${url.href} answered ${status}`);
      });
      const timer = setTimeout(() => end(`no answer from ${url.href} in ${Math.round(timeoutMs)} ms`), timeoutMs);
      const end = (reason: string | undefined): void => {
        clearTimeout(timer);
        resolve(reason);
        request.destroy();
      };
      request.on('error', (error) => end(error.message));
    }),
};

function urlOf(spec: Readonly<Record<string, unknown>>): URL {
  const text = String(spec['url']);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new RefusedError('content', `http.url ${JSON.stringify(text)} is not an http or https URL`);
  return url;
}

function statusesOf(spec: Readonly<Record<string, unknown>>): readonly number[] {
  const { status } = spec;
  if (status === undefined) return [200];
  if (!Array.isArray(status) || !status.every((code) => Number.isInteger(code)))
    throw new RefusedError('content', 'http.status must be a list of status codes');
  return status as readonly number[];
}

/** `exec {argv}`: a command ends with 0. Without a shell, and only where the node's settings allow commands. */
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

/** No config is larger, and a pattern holds everything else up for the time that it takes. */
const LONGEST = 1_048_576;

/** `file {path, matches}` or `{path, absent: true}`, below the root. `^` and `$` match at lines, as in grep. */
export const fileProbe: ProbeType = {
  field: 'file',
  check: (spec) => {
    partsOf(spec['path']);
    if (spec['absent'] !== true) patternOf(spec);
  },
  tryOnce: async (spec, { root }) => {
    const path = String(spec['path']);
    const { now, content } = await fileAt(root, path, {
      wants: ({ size }) => spec['absent'] !== true && size <= LONGEST,
    });
    if (spec['absent'] === true) return now.state === 'absent' ? undefined : `${path} exists`;
    if (now.state !== 'file') return `${path} is ${now.state === 'absent' ? 'missing' : `a ${now.state}`}`;
    if (content === undefined) return `${path} is longer than ${LONGEST} bytes`;
    return patternOf(spec).test(content.toString('utf8'))
      ? undefined
      : `${path} does not match ${String(spec['matches'])}`;
  },
};

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
