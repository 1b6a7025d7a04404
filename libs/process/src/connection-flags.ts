import { Option, type Command } from 'commander';
import { CONNECTION_SETTINGS, type ConnectFlags } from './connection-settings.js';
import type { Setting } from './setting.js';

/** The flags of `CONNECTION_SETTINGS`. Exported by `lean.ts`, because it is loaded with every `sluice` command. */
export function connectionOptions(): readonly Option[] {
  return Object.values(CONNECTION_SETTINGS).map(
    ({ variable, orVariable, flag, fallback, description }: Setting<unknown> & { readonly flag: string }) => {
      const also = orVariable === undefined ? '' : `; ${orVariable} works too`;
      const option = new Option(flag, `${description}${also}`).env(variable);
      return fallback === undefined ? option : option.default(fallback);
    },
  );
}

/** The flags that were given before or after the command. `connectTarget` reads the environment itself. */
export function connectFlagsOf(command: Command): ConnectFlags {
  const flags: Record<string, unknown> = {};
  for (const key of Object.keys(CONNECTION_SETTINGS))
    for (let at: Command | null = command; at !== null; at = at.parent)
      if (at.getOptionValueSource(key) === 'cli') flags[key] ??= at.getOptionValue(key);
  return flags;
}
