import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from '#libs/process';
import {
  keptCertificate,
  certificateLine,
  noCertificate,
  certificateStatusOf,
  type CertificateStatus,
} from '../../core/index.js';

/** The key and certificate of a TLS server. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** An unchanged warning is logged again after this time, so that every day's log has it. */
const AGAIN_MS = 24 * 3_600_000;

/**
 * The certificate of the webhook, as it is on the disk. After a renewal the new one is used without a restart.
 */
export class Certificate {
  private text = '';
  private inUse:
    | { readonly beginsMs: number; readonly endsMs: number; readonly begins: string; readonly ends: string }
    | undefined;
  private trouble = 'it has not been read yet';
  /** How many checks in a row failed. One may fail while the two files are being replaced. */
  private troubled = 0;
  private logged: { readonly words: string; readonly atMs: number } = { words: '', atMs: 0 };

  constructor(
    private readonly certFile: string,
    private readonly keyFile: string,
    private readonly logger: Logger,
    private readonly onChange: (certificateStatus: CertificateStatus) => void,
    private readonly now: () => number = Date.now,
  ) {}

  /**
   * Reads the files. Returns the certificate if it is new and can be used; otherwise the one before stays in use.
   */
  async read(): Promise<KeyPair | undefined> {
    try {
      const [cert, key] = await Promise.all([readFile(this.certFile, 'utf8'), readFile(this.keyFile, 'utf8')]);
      if (`${cert}${key}` === this.text) {
        this.troubled = 0;
        return undefined;
      }
      const { validFrom, validTo } = new X509Certificate(cert);
      // A key file that is being written may be empty, and a secure context does not need a key.
      createPrivateKey(key);
      // Throws if the key belongs to another certificate.
      createSecureContext({ cert, key });
      this.text = `${cert}${key}`;
      this.inUse = { beginsMs: Date.parse(validFrom), endsMs: Date.parse(validTo), begins: validFrom, ends: validTo };
      this.troubled = 0;
      this.logger.info({ file: this.certFile, ends: validTo }, 'the certificate of the webhook is in use');
      return { cert, key };
    } catch (error) {
      this.trouble = (error as Error).message;
      this.troubled += 1;
      return undefined;
    } finally {
      this.say();
    }
  }

  /** Marks the certificate that was read last as not in use after all. */
  forget(): void {
    this.text = '';
  }

  get certificateStatus(): CertificateStatus {
    const files = [this.certFile, this.keyFile];
    if (this.inUse === undefined) return noCertificate(files, this.trouble);
    const certificateStatus = certificateStatusOf(this.inUse, this.now());
    return certificateStatus.is === 'good' && this.troubled > 1
      ? keptCertificate(files, this.inUse.ends, this.trouble)
      : certificateStatus;
  }

  private say(): void {
    const { certificateStatus } = this;
    const { words } = certificateStatus;
    this.onChange(certificateStatus);
    const atMs = this.now();
    if (words === '' || (words === this.logged.words && atMs - this.logged.atMs < AGAIN_MS)) return;
    this.logged = { words, atMs };
    this.logger.warn({ certificate: this.certFile }, certificateLine(certificateStatus));
  }
}
