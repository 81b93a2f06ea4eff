/** Finds the programs of threads. */

/**
 * Returns the program of a thread. In a bundled program, the bundle of the thread is a file next to
 * the program's bundle (`nodes/boot/program.mjs`).
 * @param file file of the calling module, which is the program's bundle if it was bundled.
 * @param name name of the thread's bundle.
 * @param source module of the thread, for a program that was not bundled.
 */
export const threadProgram = (file: string, name: string, source: URL): string | URL =>
  file.endsWith('.mjs') ? file.replace(/mjs$/, `${name}.mjs`) : source
