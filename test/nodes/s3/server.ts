/** A local S3-compatible server (`s3rver`) for tests, on loopback. */
import S3rver from 's3rver'
import type { Bucket } from '../../../nodes/s3/files.ts'

/** Starts a server with one empty bucket, whose objects are stored in `directory`. */
export async function startS3Server(
  directory: string,
): Promise<{ readonly bucket: Bucket & { readonly endpoint: string }; stop(): Promise<void> }> {
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: 'baton', configs: [] }],
  })
  const { port } = await server.run()
  return {
    bucket: {
      bucket: 'baton',
      prefix: '',
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
    },
    stop: () => server.close(),
  }
}
