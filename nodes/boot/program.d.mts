/**
 * Returns the arguments with which node starts the program (program.mjs).
 * @param root folder of the project
 * @param loader module that loads TypeScript
 */
export function programOf(root: string, loader: string): readonly string[]
/** The arguments of node that configure its memory. */
export const MEMORY: readonly string[]
/** Returns the arguments with which node runs a TypeScript file without bundling it. */
export function sourceOf(file: string, loader: string): readonly string[]
