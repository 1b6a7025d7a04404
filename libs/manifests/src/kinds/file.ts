import { About, Fields } from '../shape/description.js';
import { Optional, Ruled } from '../shape/checked.js';
import { Flag, patternForm, Text, Word } from '../shape/forms.js';
import { FILE_PATH } from '../path.js';
import { SelectingSpec, type Kind } from './kind.js';

/** The form of a file's permissions. */
export const MODE = patternForm('bad-mode', /^[0-7]{3,4}$/, 'must be an octal mode such as "0644"');

/** The form of a user or group. A number may be any that the kernel knows. */
export const OWNER = patternForm(
  'bad-owner',
  /^([A-Za-z_][A-Za-z0-9_.-]{0,63}\$?|[0-9]{1,10})$/,
  'must be a name such as "www-data", or a number such as "33"',
);

const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

/** Why a text is no base64; line breaks in it do not matter. */
function base64Problem(text: string): string | undefined {
  const written = text.replaceAll(/\s/g, '');
  if (!BASE64.test(text)) return 'must be base64: letters, digits, "+" and "/", with "=" only at the end';
  return written.length % 4 === 0 ? undefined : 'must be whole base64: its length must be a multiple of 4';
}

/** A file with a content. */
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
  content: 'The whole content. May contain templates such as `{{ node.name }}` and `{{ node.labels.zone }}`.',
  encoding: '`base64`: the content is written in base64, for files that are not text. Without it, the content is text.',
  template:
    '`false`: the content has no templates, and `{{` in it stands for itself. Always so with `encoding`. Default: true.',
  mode: 'Permissions in octal, in quotes. If left out, an existing file keeps its permissions, and a new one gets `"0644"`.',
  owner:
    'User that owns the file: a name that the node knows, or a number in quotes. If left out, an existing file keeps its owner, and a new one belongs to the user of the applier.',
  group: 'Group of the file, like `owner`.',
  hardLinks:
    'Set it to `break` to replace a file that has several hard links. The other links keep the old content. If left out, a change of such a file is refused.',
})
export class FileSpec extends SelectingSpec {
  @Text(FILE_PATH) readonly path!: string;
  @Text() readonly content!: string;
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
  literal: ({ encoding, template }) => (encoding === undefined && template !== false ? [] : ['content']),
};
