import { About, Fields } from '../shape/description.js';
import { Nested, OnlyWith, Optional, Ruled } from '../shape/checked.js';
import { Flag, patternForm, Text, Word, type TextForm } from '../shape/forms.js';
import { HASH_PATTERN } from '#libs/contracts';
import { FILE_PATH } from '../path.js';
import { NodeSpec, type Kind } from './kind.js';

/** The form of a file's permissions. */
export const MODE = patternForm('bad-mode', /^[0-7]{3,4}$/, 'must be an octal mode such as "0644"');

/** The form of a user or group. A number may be any that the kernel supports. */
export const OWNER = patternForm(
  'bad-owner',
  /^([A-Za-z_][A-Za-z0-9_.-]{0,63}\$?|[0-9]{1,10})$/,
  'must be a name such as "www-data", or a number such as "33"',
);

const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

/** Why a text is not base64. Line breaks in it are ignored. */
function base64Problem(text: string): string | undefined {
  const digits = text.replaceAll(/\s/g, '');
  if (!BASE64.test(text)) return 'must be base64: letters, digits, "+" and "/", with "=" only at the end';
  return digits.length % 4 === 0 ? undefined : 'must be complete base64: its length must be a multiple of 4';
}

const NOT_IN_TEMPLATES = 'must not be a template';
/** A form that a text must match even if it looks like a template. */
const literalForm = (form: TextForm): TextForm => ({ ...form, anyway: () => NOT_IN_TEMPLATES });

/** Content in the object store. */
@About('Content in the object store of Sluice. Nodes fetch it before they change anything, and check its sha256.')
@Fields({
  object: 'The name that the content was uploaded with. It is shown to people; nodes find the content by its `sha256`.',
  sha256: 'The sha256 of the content, in hex. `sluice upload` prints it.',
})
export class ContentSource {
  @Text(
    literalForm(
      patternForm('bad-object', /^[!-~]{1,255}$/, 'must be 1 to 255 printable ASCII characters without spaces'),
    ),
  )
  readonly object!: string;
  @Text(
    literalForm(
      patternForm('bad-sha256', HASH_PATTERN, 'must be 64 hex digits in lower case, as sha256sum prints them'),
    ),
  )
  readonly sha256!: string;
}

/** A file with content. */
@Ruled({
  problems: ({ content, contentFrom }) => {
    if (content === undefined && contentFrom === undefined)
      return [{ at: 'content', code: 'required', message: 'is required' }];
    return content === undefined || contentFrom === undefined
      ? []
      : [{ at: 'contentFrom', code: 'exactly-one', message: 'content is given, too: keep one of them' }];
  },
  schema: { oneOf: [{ required: ['content'] }, { required: ['contentFrom'] }] },
  expressions: [
    { rule: 'has(self.content) != has(self.contentFrom)', message: 'exactly one of content and contentFrom is needed' },
  ],
})
@OnlyWith('content', 'encoding', 'is only for content')
@OnlyWith('content', 'template', 'is only for content')
@Ruled({
  problems: ({ encoding, content }) => {
    const message = encoding === 'base64' && typeof content === 'string' ? base64Problem(content) : undefined;
    return message === undefined ? [] : [{ at: 'content', code: 'bad-base64', message }];
  },
  schema: {
    anyOf: [{ not: { required: ['encoding'] } }, { properties: { content: { pattern: BASE64.source } } }],
  },
})
@About('A file with its content and permissions.')
@Fields({
  path: 'Absolute path of the file on the node. Missing parent directories are created. Only one object may use a path on a node.',
  content:
    'The whole content; large or binary content goes into `contentFrom`. May contain templates such as `{{ node.name }}` and `{{ node.labels.zone }}`.',
  contentFrom: 'Large or binary content, which is in the object store. It contains no templates.',
  encoding: '`base64`: the content is written in base64, for files that are not text. Without it, the content is text.',
  template:
    '`false`: the content has no templates, and `{{` in it is literal. Content with `encoding` never has templates. Default: true.',
  mode: 'Permissions in octal, in quotes. If left out, an existing file keeps its permissions, and a new one gets `"0644"`.',
  owner:
    'User that owns the file: a name that the node knows, or a number in quotes. If left out, an existing file keeps its owner, and a new one belongs to the user of the applier.',
  group: 'Group of the file, like `owner`.',
  hardLinks:
    'Set it to `break` to replace a file that has several hard links. The other links keep the old content. If left out, changes to such a file are refused.',
})
export class FileSpec extends NodeSpec {
  @Text(FILE_PATH) readonly path!: string;
  @Optional() @Text() readonly content?: string;
  @Optional() @Nested(() => ContentSource) readonly contentFrom?: ContentSource;
  @Optional() @Word(['base64']) readonly encoding?: 'base64';
  @Optional() @Flag() readonly template?: boolean;
  @Optional() @Text(MODE) readonly mode?: string;
  @Optional() @Text(OWNER) readonly owner?: string;
  @Optional() @Text(OWNER) readonly group?: string;
  @Optional() @Word(['break']) readonly hardLinks?: 'break';
}

export const file: Kind = {
  name: 'File',
  spec: FileSpec,
  role: 'state',
  ownsPath: true,
  literal: ({ encoding, template }) => [
    'contentFrom',
    ...(encoding === undefined && template !== false ? [] : ['content']),
  ],
};
