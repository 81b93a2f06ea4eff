/**
 * `npm run docs`: builds the documentation site in docs/.vitepress/dist. With `--serve`, it then
 * serves the site on loopback until it is stopped. The site generator is a separate package in
 * docs/, which is installed when it is missing.
 */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureDependencies } from './dependencies.mjs'

const docs = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'docs')
const serving = process.argv.includes('--serve')

/**
 * Runs a program of the package in docs/ and returns its exit code.
 * @param {string} program
 * @param {readonly string[]} args
 */
function run(program, args) {
  const child = spawn(process.execPath, [join(docs, 'node_modules', program), ...args], {
    stdio: 'inherit',
  })
  /** @param {NodeJS.Signals} signal */
  const stop = (signal) => void child.kill(signal)
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, stop)
  return new Promise((resolve) => void child.once('close', (code) => resolve(code ?? 1)))
}

try {
  ensureDependencies(docs, { development: true }, (line) => void process.stderr.write(`${line}\n`))
  process.exitCode = await run('vitepress/bin/vitepress.js', ['build', docs])
  if (process.exitCode === 0 && serving) {
    const site = join(docs, '.vitepress')
    await run('vite/bin/vite.js', ['preview', site, '--outDir', 'dist', '--host', '127.0.0.1'])
  }
} catch (error) {
  process.stderr.write(`${/** @type {Error} */ (error).message}\n`)
  process.exitCode = 1
}
