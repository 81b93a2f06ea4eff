/** The arguments of node that start the program; see program.mjs. @param root folder of the project @param loader what loads TypeScript */
export function programOf(root: string, loader: string): readonly string[]
/** The arguments of node that run a file of TypeScript as it is. */
export function sourceOf(file: string, loader: string): readonly string[]
