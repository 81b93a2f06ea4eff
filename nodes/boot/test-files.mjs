/** Which files a run of the tests consists of. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The test files that are named, each once: a folder stands for every test file below it.
 * @param {string} root folder of the project
 * @param {readonly string[]} names files and folders, relative to it
 * @returns {string[]} paths relative to the project
 */
export const testsOf = (root, names) => [
  ...new Set(
    names.flatMap((name) =>
      statSync(join(root, name), { throwIfNoEntry: false })?.isDirectory()
        ? readdirSync(join(root, name), { recursive: true, encoding: 'utf8' })
            .filter((file) => file.endsWith('.test.ts'))
            .sort()
            .map((file) => join(name, file))
        : [name],
    ),
  ),
]
