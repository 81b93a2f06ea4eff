/** Determines in which networks the repository hosts of environments may be. */
import type { Config } from '../config.ts'

const LOOPBACK = ['127.0.0.0/8', '::1/128']
const isLoopback = (host: string): boolean => /^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host)

/**
 * Returns the networks in which repository hosts may be, in addition to public addresses. Loopback
 * is included if the installation listens only on loopback, because clients that can declare a
 * repository host can then reach loopback anyway. Repositories on the same machine therefore need
 * no setting.
 */
export const repositoryNetworks = ({
  host,
  outbound_allow,
}: Pick<Config, 'host' | 'outbound_allow'>): readonly string[] => [
  ...outbound_allow,
  ...(isLoopback(host) ? LOOPBACK : []),
]
