import { About, Fields } from '../shape/description.js';
import { patternForm, Text, TextList } from '../shape/forms.js';
import { NodeSpec, type Kind } from './kind.js';

const USER = patternForm('bad-user', /^[a-z_][a-z0-9_.-]{0,30}\$?$/, 'must be the name of a user, such as "core"');
/** A line of authorized_keys: optional options, the type, the key, and an optional comment. */
export const SSH_KEY = patternForm(
  'bad-ssh-key',
  /^(?=[^\n\r\u0000]{1,16000}$)([^#\s].* )?(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]{16,}={0,3}( .*)?$/,
  'must be one public key in the format of authorized_keys, such as "ssh-ed25519 AAAA… core@example"',
);

/** Keys with which a user may log in, in addition to existing ones. */
@About('Public keys that may log in as a user.')
@Fields({
  user: 'Name of a user on the node, such as `core`.',
  keys: "Lines to add to the user's authorized_keys. Other lines in that file stay.",
})
export class SshKeysSpec extends NodeSpec {
  @Text(USER) readonly user!: string;
  @TextList(SSH_KEY, 1) readonly keys!: readonly string[];
}

export const sshKeys: Kind = { name: 'SshKeys', spec: SshKeysSpec, role: 'state' };
