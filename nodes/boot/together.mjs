/** Loads several test files into one process: `node together.mjs <file>…`. For tests without processes and servers, of which loading is most of the work. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href)
