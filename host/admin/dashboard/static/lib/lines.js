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

// Messages are the events of a text/event-stream: {id, data} each. Fields other than these
// two, and comments, are passed over.
export class Messages {
  constructor(most) {
    this.lines = new Lines(most);
    this.id = '';
    this.data = [];
  }

  // push takes bytes and gives the messages that have ended in them.
  push(bytes) {
    const out = [];
    for (const raw of this.lines.push(bytes)) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.data.length > 0) out.push({ id: this.id, data: this.data.join('\n') });
        this.data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
      if (name === 'id') this.id = value;
      if (name === 'data') this.data.push(value);
    }
    return out;
  }
}
