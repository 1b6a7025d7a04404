import { hostServices } from './host.js';

void hostServices(process.argv.slice(2));
