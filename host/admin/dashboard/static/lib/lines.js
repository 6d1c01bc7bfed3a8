// Bytes that come in pieces as lines of text.

export class Lines {
  // most is the length of the longest line, in characters; longer ones are left out.
  constructor(most) {
    this.most = most;
    this.decoder = new TextDecoder();
    this.rest = '';
    this.skipping = false;
    this.skipped = 0; // lines that were left out
  }

  // push takes bytes and gives the lines that have ended in them.
  push(bytes) {
    const parts = (this.rest + this.decoder.decode(bytes, { stream: true })).split('\n');
    this.rest = parts.pop();
    if (this.skipping && parts.length > 0) {
      parts.shift();
      this.skipping = false;
    } else if (this.skipping) {
      this.rest = '';
    }
    if (this.rest.length > this.most) {
      this.rest = '';
      this.skipping = true;
      this.skipped++;
    }
    return parts.filter((l) => l.length <= this.most || (this.skipped++, false));
  }
}
