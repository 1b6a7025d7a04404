import { PluginKind, declareValuePlugin } from '@stryker-mutator/api/plugin';

/** A text with a space in it is a sentence for people: no name, kind, phase or subject of ours has one. */
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
