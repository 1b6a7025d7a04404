import { About, Fields } from '../shape/description.js';
import { Nested, Optional } from '../shape/checked.js';
import { ExactlyOne } from '../shape/checked.js';
import { Duration, Exactly, patternForm, Text, Whole, WholeList, type TextForm } from '../shape/forms.js';
import { Command } from './exec.js';
import { FILE_PATH } from '../path.js';
import { SelectingSpec, type Kind } from './kind.js';
import { MAX_PATTERN, probePattern } from './probe-pattern.js';

const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const ADDRESS = patternForm(
  'bad-address',
  new RegExp(`^(\\[[0-9A-Fa-f:.]+\\]|[^\\s:/\\[\\]]+):${PORT}$`),
  'must be host:port with a port from 1 to 65535, such as "10.0.0.1:6443" or "[::1]:80"',
);
const URL_FORM = patternForm(
  'bad-url',
  /^https?:\/\/[^\s/?#]+([/?#]\S*)?$/,
  'must be a URL that starts with http:// or https://',
);
/** Of a pattern in a message. */
const SHOWN = 100;
const PATTERN: TextForm = {
  code: 'bad-pattern',
  problem: (text) => {
    const pattern = probePattern(text);
    return typeof pattern === 'string'
      ? `must be a regular expression in RE2 syntax, and ${JSON.stringify(text.slice(0, SHOWN))} is not: ${pattern}`
      : undefined;
  },
  schema: { format: 'regex', maxLength: MAX_PATTERN },
};

/** A TCP connection that can be opened. */
@Fields({ address: 'Host and port to connect to, such as `10.0.0.1:6443` or `[::1]:80`.' })
export class TcpProbe {
  @Text(ADDRESS) readonly address!: string;
}

/** An HTTP GET that is answered by one of these statuses. */
@Fields({
  url: 'URL to send a GET request to. Starts with http:// or https://.',
  status: 'Status codes that count as success. Default: `[200]`.',
})
export class HttpProbe {
  @Text(URL_FORM) readonly url!: string;
  @Optional() @WholeList(100, 599) readonly status?: readonly number[];
}

/** A file that is there with a certain content, or is not there. */
@ExactlyOne('matches', 'absent')
@Fields({
  path: 'Absolute path of the file on the node.',
  matches:
    'Regular expression in RE2 syntax (no backreferences, no lookaround; `^` and `$` match at line breaks) that the content must match. At most 1,000 characters.',
  absent: '`true`: the file must not exist.',
})
export class FileProbe {
  @Text(FILE_PATH) readonly path!: string;
  @Optional() @Text(PATTERN) readonly matches?: string;
  @Optional() @Exactly(true, 'wrong-type') readonly absent?: true;
}

/** What must hold after a change for it to be confirmed. */
@ExactlyOne('tcp', 'http', 'exec', 'file')
@About(
  'A check that runs before and after a change. If it is new or changed, or passed before, it must pass after the change. Otherwise the node rolls back.',
)
@Fields({
  tcp: 'Succeeds if a TCP connection can be opened.',
  http: 'Succeeds if the answer to a GET request has an expected status.',
  exec: 'Succeeds if the command exits with 0.',
  file: 'Succeeds if a file has a certain content, or does not exist.',
  timeout: 'How long one attempt may take, such as `5s`. Default: `5s`.',
  retries: 'How many more attempts are made after a failed one. Default: 3.',
})
export class ProbeSpec extends SelectingSpec {
  @Optional() @Nested(() => TcpProbe) readonly tcp?: TcpProbe;
  @Optional() @Nested(() => HttpProbe) readonly http?: HttpProbe;
  @Optional() @Nested(() => Command) readonly exec?: Command;
  @Optional() @Nested(() => FileProbe) readonly file?: FileProbe;
  @Optional() @Duration() readonly timeout?: string;
  @Optional() @Whole(0, 100) readonly retries?: number;
}

export const probe: Kind = { name: 'Probe', spec: ProbeSpec, role: 'state' };
