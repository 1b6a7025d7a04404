import { PluginKind, declareValuePlugin } from '@stryker-mutator/api/plugin';

/** A text that contains a space is a sentence for people. No name, kind, phase or subject contains one. */
const isWords = (text) => /\S\s|\s\S/.test(text);

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'words', {
    shouldIgnore(path) {
      if (path.isStringLiteral() && isWords(path.node.value)) return 'words for people';
      if (path.isTemplateLiteral() && path.node.quasis.some(({ value }) => isWords(value.raw)))
        return 'words for people';
      return undefined;
    },
  }),
];
