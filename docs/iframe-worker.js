/* Browsers refuse workers on pages that are opened from a folder, and search runs in one. There, a hidden frame does its work. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.addEventListener("load", () => this.start(frame.contentWindow, url), { once: true });
      (document.body || document.documentElement).append(frame);
    }

    start(inside, url) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => load(inside, each)));
      load(inside, url).then(() => {
        this.post = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.post);
      });
    }

    postMessage(data) {
      this.post ? this.post(data) : this.waiting.push(data);
    }

    terminate() {}
  };
}

function load(inside, url) {
  return new Promise((resolve, reject) => {
    const script = inside.document.createElement("script");
    script.src = url;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${url} cannot be loaded`));
    inside.document.body.append(script);
  });
}
