import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { monotonicMs } from '#libs/process';
import { getent, type NoAnswer } from '../host/getent.js';

/**
 * Resolves a host, and does the work with the addresses in the time that is left. Returns why the host did not resolve,
 * or what the work returns. `refusal` says why an address may not be used; if none may, that is the result.
 *
 * Node resolves names on a few threads, and a name whose server does not answer keeps one for many seconds, also after
 * its probe gave up. So each name is resolved in a process of its own, which is killed when the time is over.
 */
export async function withAddresses(
  host: string,
  timeoutMs: number,
  refusal: (address: string) => string | undefined,
  work: (lookup: LookupFunction, leftMs: number) => Promise<string | undefined>,
): Promise<string | undefined> {
  const startMs = monotonicMs();
  const addresses = isIP(host) === 0 ? await resolveHost(host, timeoutMs) : [{ address: host, family: isIP(host) }];
  if (typeof addresses === 'string') return addresses;
  const allowed = addresses.filter(({ address }) => refusal(address) === undefined);
  const [first] = addresses;
  if (allowed.length === 0 && first !== undefined)
    return `${host} resolves to ${first.address}: ${refusal(first.address)}`;
  return work(lookupOf(allowed), Math.max(1, timeoutMs - (monotonicMs() - startMs)));
}

/** The addresses of a name according to the name services of the machine, or why there are none. */
async function resolveHost(host: string, timeoutMs: number): Promise<readonly LookupAddress[] | string> {
  // Without -A, names have no IPv6 addresses where only the loopback interface has one. Older versions lack the option.
  let answer = await askGetent(['-A', 'ahosts', '--', host], timeoutMs);
  if (answer === 'unsupported') answer = await askGetent(['ahosts', '--', host], timeoutMs);
  if (answer === 'missing') answer = await lookUp(host, timeoutMs);
  if (answer === 'late') return `${host} did not resolve in ${Math.round(timeoutMs)} ms`;
  return typeof answer === 'string' || answer.length === 0 ? `${host} does not resolve to an address` : answer;
}

type Answer = readonly LookupAddress[] | NoAnswer;

async function askGetent(args: readonly string[], timeoutMs: number): Promise<Answer> {
  const answer = await getent(args, timeoutMs);
  return typeof answer === 'string' ? answer : addressesIn(answer.lines);
}

/** For machines without getent. */
const lookUp = (host: string, timeoutMs: number): Promise<Answer> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve('late'), timeoutMs);
    dnsLookup(host, { all: true }, (error, addresses) => {
      clearTimeout(timer);
      resolve(error === null ? addresses : []);
    });
  });

/** Each line of `getent ahosts` begins with an address. Most occur several times. */
function addressesIn(lines: readonly string[]): readonly LookupAddress[] {
  const addresses = lines.map((line) => line.split(/\s/)[0] ?? '');
  return [...new Set(addresses)]
    .map((address) => ({ address, family: isIP(address) }))
    .filter(({ family }) => family > 0);
}

const lookupOf =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_host, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family ?? 0);
  };
