/** Reads the numbers that are given as options of commands for developers. */
import { StartFault } from '../process/fault.ts'

/** Seeds of random choices: the values of an unsigned integer with 32 bits. */
export const MAX_SEED = 4_294_967_295

/**
 * Returns the value of the option `--<name>` of a command.
 * @throws StartFault if the text is not a whole number in the range.
 */
export function wholeNumber(
  command: 'chaos' | 'simulate',
  name: string,
  text: string,
  low: number,
  high: number,
): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < low || value > high)
    throw new StartFault(
      `--${name} is ${JSON.stringify(text)}: it must be a whole number from ${low} to ${high}, ` +
        `such as npm run ${command} -- --${name} ${low * 2}`,
    )
  return value
}
