/**
 * The arguments of node that start the program; see program.mjs.
 * @param root folder of the project
 * @param loader module that loads TypeScript
 */
export function programOf(root: string, loader: string): readonly string[]
/** The arguments of node that set the size of its memory. */
export const MEMORY: readonly string[]
/** The arguments of node that run a TypeScript file without bundling it. */
export function sourceOf(file: string, loader: string): readonly string[]
