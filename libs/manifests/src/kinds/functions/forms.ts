import { patternForm, type TextForm } from '../../shape/forms.js';
import type { FormName } from './function-kind.js';

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const ADDRESS = `${OCTET}([.]${OCTET}){3}`;
const LENGTH = '/(3[0-2]|[12]?[0-9])';
const IP = `${ADDRESS}(${LENGTH})?`;
const IPS = `${IP}(,${IP})*`;
const INTERFACE = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}';
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const NUMBER = '(0x[0-9A-Fa-f]{1,8}|[0-9]{1,10})';
/** Nothing that a shell or the config files of the function would interpret, and no spaces at an end. */
const SAFE = '[A-Za-z0-9!@%+=:,./*_-]';
const WORDS = `${SAFE}+( ${SAFE}+)*`;
const ONLY_IPV4 = 'the function knows only IPv4';

/** More than a name, an identity or a command has. */
const LONGEST_TEXT = 255;
const LONGEST_HOST = 253;
/** Linux has no interfaces with a longer name. */
const LONGEST_INTERFACE = 15;

function form(code: string, pattern: string, message: string, longest?: number): TextForm {
  const { problem, ...whole } = patternForm(code, new RegExp(`^(${pattern})$`), message);
  if (longest === undefined) return { ...whole, problem };
  return {
    ...whole,
    problem: (text) => (text.length > longest ? `must not be longer than ${longest} characters` : problem(text)),
    schema: { maxLength: longest, ...whole.schema },
  };
}

/** The name of an object that is a section of a config file. */
export const SECTION = '[A-Za-z0-9_]{1,63}';

/** What a function takes as each text. It passes many of them on to a shell without looking at them. */
export const FORMS: Readonly<Record<FormName, TextForm>> = {
  address: form(
    'bad-address',
    ADDRESS,
    `must be an IPv4 address such as 192.0.2.1, without a prefix length: ${ONLY_IPV4}`,
  ),
  ip: form('bad-address', IP, `must be an IPv4 address or network such as 192.0.2.1 or 10.0.0.0/8: ${ONLY_IPV4}`),
  maskedIp: form(
    'bad-address',
    `!?${IP}`,
    `must be an IPv4 address or network, perhaps after a "!", such as 10.0.0.0/8: ${ONLY_IPV4}`,
  ),
  subnets: form(
    'bad-address',
    IPS,
    `must be IPv4 networks, separated by commas, such as "10.0.0.0/8,192.0.2.0/24": ${ONLY_IPV4}`,
  ),
  sourceIps: form(
    'bad-address',
    `(%[a-z0-9]{1,15}|${IP})(,(%[a-z0-9]{1,15}|${IP}))*`,
    `must be %config, or IPv4 addresses or networks separated by commas: ${ONLY_IPV4}`,
  ),
  routeTarget: {
    ...form(
      'bad-address',
      `default|${IP}`,
      `must be "default", or an IPv4 address or network such as 10.0.0.0/8: ${ONLY_IPV4}`,
    ),
    problem: routeTargetProblem,
  },
  mac: form('bad-mac', '[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}', 'must be a MAC address such as "02:00:00:00:00:01"'),
  mark: form(
    'bad-mark',
    `${NUMBER}(/${NUMBER})?`,
    'must be a number, or a number and a mask, such as "0x10" or "0x10/0xff": the function passes it on to a shell',
  ),
  fwmark: form('bad-mark', '(0x)?[0-9A-Fa-f]{1,8}', 'must be at most 8 hexadecimal digits, such as "0x10"'),
  table: form(
    'bad-table',
    'main|local|default|[1-9][0-9]{0,9}',
    'must be main, local, default, or the number of a routing table from 1',
  ),
  interface: form(
    'bad-interface',
    INTERFACE,
    'must be the name of an interface: at most 15 letters, digits, "_", "." and "-"',
  ),
  device: form(
    'bad-interface',
    `#default|#${ADDRESS}|${INTERFACE}`,
    'must be the name of an interface, "#default", or "#" and an IPv4 address of the function, such as "#192.0.2.1"',
  ),
  natTarget: form(
    'bad-interface',
    `#default|#source|${INTERFACE}`,
    'must be the name of an interface, "#default" or "#source"',
  ),
  zone: form(
    'bad-name',
    '[a-z0-9]{1,11}',
    'must be the name of a FirewallZone: at most 11 of a-z and 0-9. For all zones, write one object per zone',
  ),
  reference: form(
    'bad-name',
    '[a-z0-9]{1,63}',
    'must be the name of an object of a function: at most 63 of a-z and 0-9',
  ),
  connection: form(
    'bad-name',
    SECTION,
    'must consist of letters, digits and "_": the function loses connections with other names',
  ),
  gateway: form(
    'bad-gateway',
    `${ADDRESS}|(${LABEL}[.])*[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`,
    'must be an IPv4 address, a host name, or "any"',
    LONGEST_TEXT,
  ),
  host: form(
    'bad-host',
    `${ADDRESS}|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])*[a-z]([a-z0-9-]{0,61}[a-z0-9])?`,
    `must be a full host name in lower case, without a dot at its end, or an IPv4 address: ${ONLY_IPV4}`,
    LONGEST_HOST,
  ),
  hub: {
    ...form('bad-address', ADDRESS, `must be an IPv4 address such as 192.0.2.1: ${ONLY_IPV4}`),
    problem: hubProblem,
  },
  network: {
    ...form('bad-address', IP, `must be an IPv4 address or network such as 10.0.0.0/8: ${ONLY_IPV4}`),
    problem: (text) =>
      text === 'default' ? 'must be an IPv4 address or network such as 10.0.0.0/8' : routeTargetProblem(text),
  },
  identifier: form(
    'bad-text',
    WORDS,
    'must be an identity such as "vpn.example.com", "a@b.example" or "CN=a, O=b", without characters that a shell interprets',
    LONGEST_TEXT,
  ),
  secret: form(
    'bad-text',
    '[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,512}',
    'must be at most 512 visible ASCII characters without spaces, quotes (") and backslashes, which the config file of the function changes',
  ),
  script: form(
    'bad-text',
    '/[A-Za-z0-9/._-]+( [A-Za-z0-9/._:=,-]+)*',
    'must be the path of a program, perhaps with plain arguments: the function passes it on to a shell',
    LONGEST_TEXT,
  ),
  extra: form(
    'bad-text',
    WORDS,
    'must be arguments for iptables, without characters that a shell interprets',
    LONGEST_TEXT,
  ),
  certificates: form(
    'bad-certificate',
    '[A-Za-z0-9+/]{4,}={0,2}(___[A-Za-z0-9+/]{4,}={0,2})*',
    'must be base64 on one line, and several joined by "___"',
  ),
};

/** `ip route` refuses a network whose address has bits of a host, and the function reports success. */
function routeTargetProblem(text: string): string | undefined {
  if (!new RegExp(`^(default|${IP})$`).test(text))
    return `must be "default", or an IPv4 address or network such as 10.0.0.0/8: ${ONLY_IPV4}`;
  const [address = '', length] = text.split('/');
  if (text === 'default' || length === undefined) return undefined;
  const number = numberOf(address);
  const mask = length === '0' ? 0 : (0xffff_ffff << (32 - Number(length))) >>> 0;
  const network = (number & mask) >>> 0;
  return network === number
    ? undefined
    : `must be the address of the network: did you mean ${addressOf(network)}/${length}?`;
}

function hubProblem(text: string): string | undefined {
  if (!new RegExp(`^(${ADDRESS})$`).test(text)) return `must be an IPv4 address such as 192.0.2.1: ${ONLY_IPV4}`;
  const name = `vti_${text}`;
  return name.length <= LONGEST_INTERFACE
    ? undefined
    : `makes the interface ${name}, but names of interfaces have at most ${LONGEST_INTERFACE} characters: use an address of at most ${LONGEST_INTERFACE - 'vti_'.length} characters`;
}

const numberOf = (address: string): number => address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
const addressOf = (number: number): string => [24, 16, 8, 0].map((bits) => (number >>> bits) & 255).join('.');
