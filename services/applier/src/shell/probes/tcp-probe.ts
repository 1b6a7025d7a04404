import { connect } from 'node:net';
import { Refused } from '../ports.js';
import type { ProbeType } from './probe-type.js';

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):([0-9]{1,5})$/;

/** `tcp {address}`: a connection is accepted. Refused is not. */
export const tcpProbe: ProbeType = {
  field: 'tcp',
  check: (spec) => void addressOf(spec),
  tryOnce: (spec, _surroundings, timeoutMs) =>
    new Promise((resolve) => {
      const socket = connect({ ...addressOf(spec), timeout: timeoutMs });
      const end = (reason: string | undefined): void => {
        clearTimeout(timer);
        socket.destroy();
        resolve(reason);
      };
      const timer = setTimeout(
        () => end(`no connection to ${String(spec['address'])} in ${Math.round(timeoutMs)} ms`),
        timeoutMs,
      );
      socket.on('connect', () => end(undefined));
      socket.on('error', (error) => end(error.message));
    }),
};

function addressOf(spec: Readonly<Record<string, unknown>>): { readonly host: string; readonly port: number } {
  const match = ADDRESS.exec(String(spec['address']));
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535)
    throw new Refused('content', `tcp.address ${JSON.stringify(spec['address'])} is not host:port`);
  return { host: match[1] ?? match[2] ?? '', port };
}
