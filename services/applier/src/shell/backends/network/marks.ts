/** The group of every interface that Sluice makes: given with its name, so that no kill leaves one without. */
export const LINK_GROUP = '211';

/** The protocol number of every route and rule that Sluice makes; the kernel and FRR use others. */
export const PROTOCOL = '211';
