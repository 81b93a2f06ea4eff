/** The metrics of a gateway. */
import type { Counters } from '../../gateway/ports.ts'
import type { Instruments } from './instruments.ts'

export function createGatewayMetrics({ counter, gauge, histogram }: Instruments): Counters {
  const requests = histogram(
    'request_seconds',
    'Duration of HTTP requests',
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15],
    'operation',
    'status',
  )
  const open = {
    sse: gauge('sse_streams_open', 'Open event streams'),
    worker_sockets: gauge('worker_sockets_open', 'Open worker sockets'),
    followers: gauge(
      'followers_open',
      'Runs and projects that this gateway follows for event streams',
    ),
  }
  const counted = {
    frames_in: counter('worker_frames_in', 'Frames received from workers'),
    frames_out: counter('worker_frames_out', 'Frames sent to workers'),
    events_sent: counter('events_sent', 'Events sent on event streams'),
    stream_fallbacks: counter(
      'stream_fallbacks',
      'Event streams that fell back to replay from the view',
    ),
    rate_limited: counter('rate_limited', 'Requests rejected by a rate limit'),
  }
  const refusals = counter('refusals', 'Rejected requests, by error code', 'code')
  return {
    request: (operation, status, seconds) => requests.observe({ operation, status }, seconds),
    open: (what, change) => open[what].inc(change),
    inc: (name) => counted[name].inc(),
    refused: (code) => refusals.inc({ code }),
  }
}
