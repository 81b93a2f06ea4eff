/**
 * Finds the Chromium for tests and benchmarks: the executable in BATON_CHROMIUM, or else Chromium's
 * headless shell, Chromium or Chrome from the PATH.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Names of executables. If a folder of the PATH contains several of them, the first is used. The
 * headless shell needs half the processor time of Chromium, because Chromium also draws its own
 * window.
 */
const names = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
]
const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
  } catch {
    return false
  }
  return true
}

/** Returns the path of the executable; undefined if none is found. */
export const chromiumPath = (): string | undefined =>
  process.env['BATON_CHROMIUM'] ||
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isExecutable)

/**
 * Arguments of Chromium. Its sandbox is disabled, because it does not work in containers and only
 * pages of the service are opened.
 */
export const CHROMIUM_ARGS: readonly string[] = ['--no-sandbox', '--disable-dev-shm-usage']
