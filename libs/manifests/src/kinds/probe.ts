import { About, Fields } from '../shape/description.js';
import { ExactlyOne, Nested, OnlyWith, Optional, Ruled } from '../shape/checked.js';
import { Duration, Exactly, patternForm, Text, Whole, WholeList, Word, type TextForm } from '../shape/forms.js';
import { KUBE_API_VERSION, KUBE_KIND, KUBE_NAME, KUBE_NAMESPACE } from './cluster/kube-forms.js';
import { celExpression, MAX_EXPRESSION } from './cel-expression.js';
import { Command } from './exec.js';
import { FILE_PATH } from '../path.js';
import { NodeSpec, type Kind } from './kind.js';
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
/** How many characters of a pattern a message shows. */
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

const EXPRESSION: TextForm = {
  code: 'bad-expression',
  problem: (text) => {
    const expression = celExpression(text);
    return typeof expression === 'string'
      ? `must be a CEL expression, and ${JSON.stringify(text.slice(0, SHOWN))} is not: ${expression}`
      : undefined;
  },
  schema: { maxLength: MAX_EXPRESSION },
};

/** The modules of a network function that say whether they work. */
const PROBED_MODULES = ['ipsec'];

/** A TCP connection that can be opened. */
@Fields({
  address:
    'Host and port to connect to, such as `10.0.0.1:6443` or `[::1]:80`. Not a link-local address, unless the node allows it.',
})
export class TcpProbe {
  @Text(ADDRESS) readonly address!: string;
}

/** An HTTP GET whose response has one of these statuses. */
@Fields({
  url: 'URL to send a GET request to. Starts with http:// or https://. Not on a link-local address, unless the node allows it. Redirects are not followed.',
  status: 'Status codes that count as success. Default: `[200]`.',
})
export class HttpProbe {
  @Text(URL_FORM) readonly url!: string;
  @Optional() @WholeList(100, 599) readonly status?: readonly number[];
}

/** A file that exists with some content, or does not exist. */
@ExactlyOne('matches', 'absent')
@Fields({
  path: 'Absolute path of the file on the node.',
  matches:
    'Regular expression in RE2 syntax (no backreferences, no lookaround; `^` and `$` match at line breaks) that the content must match. At most 1,000 characters. At most 1 MiB of a file is read, and less if the pattern is large: a longer file fails the probe.',
  absent: '`true`: the file must not exist.',
})
export class FileProbe {
  @Text(FILE_PATH) readonly path!: string;
  @Optional() @Text(PATTERN) readonly matches?: string;
  @Optional() @Exactly(true, 'wrong-type') readonly absent?: true;
}

/** What a module of a network function says about itself. */
@Fields({ module: '`ipsec`: it works if every connection is up or is being set up.' })
export class FunctionProbe {
  @Word(PROBED_MODULES) readonly module!: string;
}

/** An object of a cluster that exists, has a condition, meets an expression, or does not exist. */
@OnlyWith('condition', 'status', 'is only for condition')
@Ruled({
  problems: ({ condition, expression, absent }) => {
    const [other] = [
      ...(condition === undefined ? [] : ['condition']),
      ...(expression === undefined ? [] : ['expression']),
    ];
    return other !== undefined && absent !== undefined
      ? [{ at: 'absent', code: 'forbidden', message: `${other} is given, too: keep one of them` }]
      : [];
  },
  schema: { not: { required: ['absent'], anyOf: [{ required: ['condition'] }, { required: ['expression'] }] } },
  expressions: [
    {
      rule: '!((has(self.condition) || has(self.expression)) && has(self.absent))',
      message: 'absent excludes condition and expression',
    },
  ],
})
@Fields({
  apiVersion: 'The API of the object, such as `apps/v1`.',
  kind: 'The kind of the object, such as `Deployment`.',
  name: 'The name of the object.',
  namespace: 'The namespace of the object, if it is in one.',
  condition:
    'A condition in the status of the object, such as `Available`. Its controller must have seen the latest generation. Without it and without an expression, the object only has to exist.',
  status: 'The status that the condition must have: `"True"`, `"False"` or `"Unknown"`. Default: `"True"`.',
  expression:
    'A [CEL](https://cel.dev) expression that must be true, such as `object.status.readyReplicas >= 2`. `object` is the whole object. The controller must have seen its latest generation, if it says which one it has seen. An expression that fails, for example because a field is missing, or that takes longer than a second, fails the probe. At most 2,000 characters.',
  absent: '`true`: the object must not exist.',
})
export class KubeProbe {
  @Text(KUBE_API_VERSION) readonly apiVersion!: string;
  @Text(KUBE_KIND) readonly kind!: string;
  @Text(KUBE_NAME) readonly name!: string;
  @Optional() @Text(KUBE_NAMESPACE) readonly namespace?: string;
  @Optional() @Text() readonly condition?: string;
  @Optional() @Word(['True', 'False', 'Unknown']) readonly status?: string;
  @Optional() @Text(EXPRESSION) readonly expression?: string;
  @Optional() @Exactly(true, 'wrong-type') readonly absent?: true;
}

/** A condition that must hold after a change, or the change is not confirmed. */
@ExactlyOne('tcp', 'http', 'exec', 'file', 'function', 'kube')
@About(
  'A check that runs before and after a change. If it is new or changed, or passed before, it must pass after the change. Otherwise the node rolls back.',
)
@Fields({
  tcp: 'Succeeds if a TCP connection can be opened.',
  http: 'Succeeds if the answer to a GET request has an expected status.',
  exec: 'Succeeds if the command exits with 0.',
  file: 'Succeeds if a file has a certain content, or does not exist.',
  function: 'Succeeds if a module of a network function (SD-EWAN CNF) says that it works.',
  kube: 'Only on clusters. Succeeds if an object exists, has a condition, meets a CEL expression, or does not exist.',
  timeout:
    'How long one attempt may take, such as `5s`. Less than two thirds of the `applyTimeout` of the pool. Default: `5s`.',
  retries: 'How many more attempts are made after a failed one. Before a change, none is made. Default: 3.',
  interval:
    'How long to wait before the probe runs again while nothing changes, such as `30s`; at least `1s`. If it fails then, the node is unhealthy. Default: `1m`.',
})
export class ProbeSpec extends NodeSpec {
  @Optional() @Nested(() => TcpProbe) readonly tcp?: TcpProbe;
  @Optional() @Nested(() => HttpProbe) readonly http?: HttpProbe;
  @Optional() @Nested(() => Command) readonly exec?: Command;
  @Optional() @Nested(() => FileProbe) readonly file?: FileProbe;
  @Optional() @Nested(() => FunctionProbe) readonly function?: FunctionProbe;
  @Optional() @Nested(() => KubeProbe) readonly kube?: KubeProbe;
  @Optional() @Duration() readonly timeout?: string;
  @Optional() @Whole(0, 100) readonly retries?: number;
  @Optional()
  @Duration({ least: '1s', because: 'a probe that runs more often loads the node' })
  readonly interval?: string;
}

export const probe: Kind = { name: 'Probe', spec: ProbeSpec, role: 'state' };
