import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { MAX_CONFIG_BYTES } from '#libs/manifests';

/** Ignition's `contents`. */
export interface Contents {
  readonly source?: string;
  readonly compression?: string;
  readonly hash?: string;
}

/** What a file in Ignition contains, or why it cannot be imported. */
export type Content = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly why: string };

/** Reads Ignition's `contents`: a `data:` URL, which may be compressed and may have a digest. */
export function contentOf({ source, compression, hash }: Contents): Content {
  if (source === undefined || source === '') return { ok: true, bytes: Buffer.alloc(0) };
  if (!source.startsWith('data:')) return no(`import does not download its content from ${source.slice(0, 100)}`);
  const data = dataOf(source);
  if (data === undefined) return no('malformed data: URL');
  const plain = expanded(data, compression);
  if (typeof plain === 'string') return no(plain);
  const wrong = wrongDigest(plain, hash);
  return wrong === undefined ? { ok: true, bytes: plain } : no(wrong);
}

const no = (why: string): Content => ({ ok: false, why });

function dataOf(url: string): Buffer | undefined {
  const match = /^data:([^,]*),(.*)$/s.exec(url);
  const data = match?.[2];
  if (data === undefined) return undefined;
  try {
    if (/;base64$/i.test(match?.[1] ?? '')) return Buffer.from(decodeURIComponent(data), 'base64');
    // Percent-encoding stands for bytes, which need not be UTF-8.
    return Buffer.from(
      data
        .replaceAll(/[^%\x21-\x7e]/g, (character) => encodeURIComponent(character))
        .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
      'latin1',
    );
  } catch {
    return undefined;
  }
}

function expanded(data: Buffer, compression = ''): Buffer | string {
  if (compression === '') return data;
  if (compression !== 'gzip') return `unsupported compression ${JSON.stringify(compression)}; use gzip`;
  try {
    return gunzipSync(data, { maxOutputLength: MAX_CONFIG_BYTES });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? `its content is larger than ${MAX_CONFIG_BYTES} bytes`
      : 'its content is not valid gzip';
  }
}

function wrongDigest(content: Buffer, hash = ''): string | undefined {
  if (hash === '') return undefined;
  const [, kind = '', digest = ''] = /^(sha256|sha512)-([0-9a-f]+)$/.exec(hash) ?? [];
  if (kind === '') return `unsupported digest ${JSON.stringify(hash.slice(0, 40))}; use sha256 or sha512`;
  return createHash(kind).update(content).digest('hex') === digest
    ? undefined
    : `its content does not match its ${kind} digest`;
}
