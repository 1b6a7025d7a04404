import type { ServiceNotes } from '#libs/nats';
import type { Kube } from '#libs/kube';
import { API_GROUP, API_GROUP_VERSION, compareDefinitions } from '#libs/manifests';
import type { Logger } from '#libs/process';
import { DEFINITIONS_TODO, NO_TROUBLE, troubleOf, type DefinitionTrouble } from '../core/index.js';

/** Definitions change only during an installation or upgrade, and checking them is cheap. */
const LOOK_MS = 30_000;
const NOTE = 'definitions';

/** Checks from time to time that the API server has the definitions of this version, and reports differences. */
export class Definitions {
  private version = '';
  private trouble: DefinitionTrouble = NO_TROUBLE;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly kube: Kube,
    private notes: ServiceNotes | undefined,
    private readonly logger: Logger,
    private readonly changed: () => void,
    private readonly lookMs = LOOK_MS,
  ) {}

  start(): this {
    void this.look();
    this.timer = setInterval(() => void this.look(), this.lookMs).unref();
    return this;
  }

  stop(): void {
    clearInterval(this.timer);
    // The next leader checks on its own.
    this.notes?.set(NOTE, undefined);
    this.notes = undefined;
  }

  /** Kinds whose definition has another version, and what that means. */
  get troubleNow(): DefinitionTrouble {
    return this.trouble;
  }

  private async look(): Promise<void> {
    try {
      const { version, versions, document } = await this.kube.readSchemas(API_GROUP, API_GROUP_VERSION, this.version);
      if (document === undefined && version !== '') return;
      this.version = version;
      this.tell(troubleOf(document === undefined ? undefined : compareDefinitions(document), versions));
    } catch (error) {
      this.logger.debug({ error }, 'the custom resource definitions cannot be read; trying again');
    }
  }

  private tell(trouble: DefinitionTrouble): void {
    const { words } = trouble;
    if (words === this.trouble.words) return;
    this.trouble = trouble;
    this.notes?.set(NOTE, words === undefined ? undefined : { state: 'bad', words, todo: DEFINITIONS_TODO });
    if (words === undefined) this.logger.info({}, 'the custom resource definitions are up to date');
    else this.logger.warn({}, `${words}: ${DEFINITIONS_TODO}`);
    this.changed();
  }
}
