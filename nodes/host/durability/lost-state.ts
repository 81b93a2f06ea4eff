/**
 * Thrown when the stored state was lost or written by another owner. The state in memory can then
 * no longer be trusted.
 */
export class LostState extends Error {}
