import * as http from 'node:http';
import * as https from 'node:https';
import { Refused } from '../ports.js';
import type { ProbeType } from './probe-type.js';

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
        end(wanted.includes(status) ? undefined : `${url.href} answers ${status}`);
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
    throw new Refused('content', `http.url ${JSON.stringify(text)} is no http URL`);
  return url;
}

function statusesOf(spec: Readonly<Record<string, unknown>>): readonly number[] {
  const { status } = spec;
  if (status === undefined) return [200];
  if (!Array.isArray(status) || !status.every((code) => Number.isInteger(code)))
    throw new Refused('content', 'http.status is not a list of statuses');
  return status as readonly number[];
}
